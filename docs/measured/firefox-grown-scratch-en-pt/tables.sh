# The tables of this folder.
E=results/firefox-grown-en-pt
LAMBDAS="0 0.006 0.03 0.12"
RUNS="$E/baseline/seed-1"
for lam in $LAMBDAS; do RUNS="$RUNS $E/gates/all/lam-$lam/seed-1 $E/pruned/all/lam-$lam/seed-1"; done
for run in $E/scratch/all/*/seed-1 $E/selected/all/*/seed-1; do [ -e $run/bleu.json ] && RUNS="$RUNS $run"; done
T=results/tables; F=results/figures/firefox-grown-en-pt; mkdir -p $T $F
python -m heads table --name pruning --runs $RUNS --out $T/table_pruning.tsv
python -m heads table --name scratch_curve --runs $RUNS --out $T/table_scratch_curve.tsv
python -m heads figure --name scratch_curves --runs $RUNS --out-pdf $F/scratch_curves.pdf --out-png $F/scratch_curves.png
