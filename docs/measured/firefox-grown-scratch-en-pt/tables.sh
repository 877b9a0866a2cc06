# The tables of this folder, and BLEU of each pruned model and of its heads from scratch against the same heads fine-tuned without gates.
E=results/firefox-grown-en-pt
RUNS="$E/baseline/seed-1"
for lam in 0 0.006 0.03 0.12; do RUNS="$RUNS $E/gates/all/lam-$lam/seed-1 $E/pruned/all/lam-$lam/seed-1"; done
for lam in 0 0.003 0.006 0.01 0.02 0.03 0.06; do RUNS="$RUNS $E/gates/enc_self/lam-$lam/seed-1 $E/pruned/enc_self/lam-$lam/seed-1"; done
for lam in 0.006 0.03 0.12; do RUNS="$RUNS $E/scratch/all/lam-$lam/seed-1 $E/selected/all/lam-$lam/seed-1"; done
T=results/tables; F=results/figures/firefox-grown-en-pt; mkdir -p $T $F
python -m heads table --name pruning --runs $RUNS --out $T/table_pruning.tsv
python -m heads table --name scratch_curve --runs $RUNS --out $T/table_scratch_curve.tsv
python -m heads table --name spare --runs $RUNS --out $T/table_spare.tsv
python -m heads figure --name scratch_curves --runs $RUNS --out-pdf $F/scratch_curves.pdf --out-png $F/scratch_curves.png
for lam in 0.006 0.03 0.12; do
  python -m heads compared --settings '{"selection": {"at_least": {"enc_self": 1, "dec_self": 1, "dec_enc": 1}, "resamples": 10000}}' --baseline $E/selected/all/lam-$lam/seed-1 --runs $E/pruned/all/lam-$lam/seed-1 $E/scratch/all/lam-$lam/seed-1 --references results/corpora/firefox-long-en-pt/test.target.txt --out against_$lam.tsv
done
# One table, without the header of the second and third.
awk 'FNR > 1 || NR == 1' against_0.006.tsv against_0.03.tsv against_0.12.tsv > against_fine_tuned.tsv
