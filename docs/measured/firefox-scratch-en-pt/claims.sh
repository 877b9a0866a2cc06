# Seed 1 with heads masked alone, layers cut to one head, relevance and claims.
E=results/firefox-scratch-en-pt
RUNS="$E/baseline/seed-1 $E/gates/all/lam-0/seed-1 $E/gates/all/lam-0.02/seed-1 $E/pruned/all/lam-0/seed-1 $E/pruned/all/lam-0.02/seed-1"
for name in claims michel_table1 michel_table2; do
  python -m heads table --name $name --runs $RUNS --out results/tables/table_$name.tsv
done
