# The tables and figures of this folder, from the runs that were trained on the GPU and the measures made without one.
E=results/paper-size-en-pt
BASE=$E/baseline/seed-1
SMALL=$E/pruned/enc_self/lam-0.006/seed-1
TRAINED=$(for kind in gates pruned; do for run in enc_self/lam-0 enc_self/lam-0.006 all/lam-0 all/lam-0.006; do echo $E/$kind/$run/seed-1; done; done)
T=results/tables; F=results/figures/paper-size-en-pt; mkdir -p $T $F
table() { name=$1; shift; python -m heads table --name $name --runs $* --out $T/table_$name.tsv; }
figure() { name=$1; shift; python -m heads figure --name $name --runs $* --out-pdf $F/$name.pdf --out-png $F/$name.png; }
for name in pruning spare measures correlations claims; do table $name $BASE $TRAINED; done
table roles $BASE $SMALL
table dependencies $BASE
table cross_attention $BASE
for name in heads_by_layer heads_needed head_functions; do figure $name $BASE $TRAINED; done
