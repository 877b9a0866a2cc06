# The page of the paper-size model, with maps of sentences of the grammar; after tables.sh.
E=results/paper-size-en-pt
CORPUS='{"kind": "files", "source": "en", "target": "pt", "cleaning": {"max_words": 60, "max_length_ratio": 4.0}, "trees": {"grammar": 500}, "train": [{"source": "a", "target": "b"}], "dev": [{"source": "a", "target": "b"}], "test": [{"source": "a", "target": "b"}]}'
python -m heads trees --settings "$CORPUS" --split dev --downloads results/downloads --out results/grammar.conllu
for run in baseline/seed-1 pruned/enc_self/lam-0.006/seed-1; do
  python -m heads maps --settings '{"maps": {"max_words": 14, "min_words": 8, "sentences": 16}, "translate": {"batch_tokens": 4000, "beam": 4, "length_penalty": 0.6, "sentences": 0}}' --model $E/$run --source-bpe $E/bpe/source.model --target-bpe $E/bpe/target.model --sentences results/grammar.conllu --labels --trees --out $E/$run/maps.json
done
python -m heads explore --runs $E/baseline/seed-1 $(echo $E/gates/enc_self/lam-{0,0.002,0.006,0.02}/seed-1 $E/gates/all/lam-{0,0.002,0.006,0.01,0.02}/seed-1) $E/pruned/enc_self/lam-0.006/seed-1 --tables results/tables/table_{measures,pruning,claims}.tsv --gates '{"paper-size-en-pt": {"temperature": 0.33, "low": -0.1, "high": 1.1, "log_alpha_init": 3.0}}' --out results/explore.html
