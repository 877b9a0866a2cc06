# The tables and figures of this folder, from the runs that were trained on the GPU and the measures made without one.
E=results/paper-size-en-pt
BASE=$E/baseline/seed-1
SMALL=$E/pruned/enc_self/lam-0.006/seed-1
TRAINED=$(for kind in gates pruned; do for run in enc_self/lam-{0,0.002,0.006,0.02} all/lam-{0,0.002,0.006,0.01,0.02}; do echo $E/$kind/$run/seed-1; done; done)
TRAINED="$TRAINED $E/selected/all/lam-0.006/seed-1 $E/scratch/all/lam-0.006/seed-1"
T=results/tables; F=results/figures/paper-size-en-pt; mkdir -p $T $F
table() { name=$1; shift; python -m heads table --name $name --runs $* --out $T/table_$name.tsv; }
figure() { name=$1; shift; python -m heads figure --name $name --runs $* --out-pdf $F/$name.pdf --out-png $F/$name.png; }
for name in pruning spare measures correlations claims; do table $name $BASE $TRAINED; done
table roles $BASE $SMALL
table dependencies $BASE
table cross_attention $BASE
for name in heads_by_layer heads_needed head_functions bleu_encoder_heads; do figure $name $BASE $TRAINED; done
# What λ 0.006 alone spares, with its intervals.
F6=$(for kind in gates pruned; do for run in {enc_self,all}/lam-{0,0.006}; do echo $E/$kind/$run/seed-1; done; done)
python -m heads table --name spare --runs $BASE $F6 --out spare_0.006.tsv
# 65 of 144 heads in five ways, against the same number from scratch, and against what gates left.
for against in scratch pruned; do
  python -m heads compared --settings '{"selection": {"at_least": {"enc_self": 1, "dec_self": 1, "dec_enc": 1}, "resamples": 10000}}' --baseline $E/$against/all/lam-0.006/seed-1 --runs $E/pruned/all/lam-0.006/seed-1 $E/selected/all/{lam-0.006,example_layer-65,random1-65,surgeon-65}/seed-1 $BASE --references results/corpora/firefox-big-en-pt/test.target.txt --out against_$against.tsv
done
