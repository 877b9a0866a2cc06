# The tables of this folder; of claims, those of the trainings from scratch came later.
E=results/firefox-scratch-6-en-pt
BASE="$E/baseline/seed-1"
GATES="$E/gates/all/lam-0/seed-1 $E/gates/all/lam-0.02/seed-1"
PRUNED="$E/pruned/all/lam-0/seed-1 $E/pruned/all/lam-0.02/seed-1"
SCRATCH="$E/scratch/all/lam-0.02/seed-1"
MORE="$SCRATCH $E/selected/all/lam-0.02/seed-1"
T=results/tables; F=results/figures/firefox-scratch-6-en-pt; mkdir -p $T $F
python -m heads table --name pruning --runs $BASE $GATES $PRUNED $MORE --out $T/table_pruning.tsv
python -m heads table --name scratch_curve --runs $BASE $GATES $PRUNED $MORE --out $T/table_scratch_curve.tsv
python -m heads table --name roles --runs $BASE $E/pruned/all/lam-0.02/seed-1 --out $T/table_roles.tsv
python -m heads table --name dynamics --runs $BASE --out $T/table_dynamics.tsv
python -m heads table --name dependencies --runs $BASE --out $T/table_dependencies.tsv
python -m heads table --name claims --runs $BASE $GATES $PRUNED $MORE --out $T/table_claims.tsv
python -m heads figure --name heads_by_layer --runs $BASE $GATES $PRUNED --out-pdf $F/heads_by_layer.pdf --out-png $F/heads_by_layer.png
python -m heads figure --name scratch_curves --runs $BASE $GATES $PRUNED $MORE --out-pdf $F/scratch_curves.pdf --out-png $F/scratch_curves.png
python -m heads compared --settings '{"selection": {"at_least": {"enc_self": 1, "dec_self": 1, "dec_enc": 1}, "resamples": 10000}}' --baseline $SCRATCH --runs $E/pruned/all/lam-0.02/seed-1 $E/selected/all/lam-0.02/seed-1 $BASE --references results/corpora/firefox-long-en-pt/test.target.txt --out against_scratch.tsv
