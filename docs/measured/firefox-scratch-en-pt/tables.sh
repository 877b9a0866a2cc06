# The tables of this folder: seed 1 alone was trained from scratch and fine-tuned for longer.
E=results/firefox-scratch-en-pt
BASE="$E/baseline/seed-1 $E/baseline/seed-2"
GATES="$E/gates/all/lam-0/seed-1 $E/gates/all/lam-0/seed-2 $E/gates/all/lam-0.02/seed-1 $E/gates/all/lam-0.02/seed-2"
PRUNED="$E/pruned/all/lam-0/seed-1 $E/pruned/all/lam-0/seed-2 $E/pruned/all/lam-0.02/seed-1 $E/pruned/all/lam-0.02/seed-2"
MORE="$E/scratch/all/lam-0.02/seed-1 $E/selected/all/lam-0.02/seed-1"
T=results/tables; F=results/figures/firefox-scratch-en-pt; mkdir -p $T $F
python -m heads table --name pruning --runs $BASE $GATES $PRUNED $MORE --out $T/table_pruning.tsv
python -m heads table --name scratch_curve --runs $BASE $GATES $PRUNED $MORE --out $T/table_scratch_curve.tsv
python -m heads table --name roles --runs $BASE $E/pruned/all/lam-0.02/seed-1 $E/pruned/all/lam-0.02/seed-2 --out $T/table_roles.tsv
python -m heads table --name dynamics --runs $BASE --out $T/table_dynamics.tsv
python -m heads table --name dependencies --runs $BASE --out $T/table_dependencies.tsv
python -m heads figure --name scratch_curves --runs $BASE $GATES $PRUNED $MORE --out-pdf $F/scratch_curves.pdf --out-png $F/scratch_curves.png
python -m heads compared --settings '{"selection": {"at_least": {"enc_self": 1, "dec_self": 1, "dec_enc": 1}, "resamples": 10000}}' --baseline $E/scratch/all/lam-0.02/seed-1 --runs $E/pruned/all/lam-0.02/seed-1 $E/selected/all/lam-0.02/seed-1 $E/baseline/seed-1 --references results/corpora/firefox-long-en-pt/test.target.txt --out against_scratch.tsv
