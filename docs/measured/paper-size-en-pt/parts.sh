# BLEU and chrF of each model on NTREX's test part (the first 518 sentences) and on PUD (the last 1,000) apart, by sacrebleu.
E=results/paper-size-en-pt; REF=results/corpora/firefox-big-en-pt/test.target.txt; D=$(mktemp -d)
head -n 518 $REF > $D/ntrex; tail -n 1000 $REF > $D/pud
printf 'run\tntrex_bleu\tntrex_chrf\tpud_bleu\tpud_chrf\n' > parts.tsv
for run in baseline/seed-1 $(cd $E && ls -d pruned/*/*/seed-1 selected/all/*/seed-1 scratch/all/*/seed-1); do
  [ -f $E/$run/translations.txt ] || continue
  head -n 518 $E/$run/translations.txt > $D/ntrex.out; tail -n 1000 $E/$run/translations.txt > $D/pud.out
  row=$run
  for part in ntrex pud; do for m in bleu chrf; do row="$row\t$(sacrebleu $D/$part -i $D/$part.out -m $m -b -w 2)"; done; done
  printf "$row\n" >> parts.tsv
done
