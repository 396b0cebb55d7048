# Read JSON lines of hg-train; print the summaries as a table with a verdict on each half-precision
# run against fp32.
function field(name,   m) {
  m = $0
  if (!sub(".*\"" name "\": *\"?", "", m)) return "?"
  sub("[\",}].*", "", m)
  return m
}
# "+0.2", "-0.1", but "0.0": a value that rounds to zero has no sign
function signed(points,   text) {
  text = sprintf("%+.1f", points)
  return text + 0 == 0 ? "0.0" : text
}
/"event": *"summary"/ {
  n++
  precision[n] = field("precision")
  accuracy[n] = 100 * field("test_accuracy_mean")
  ms[n] = field("epoch_ms_median")
  state[n] = field("state_bytes")
  peak[n] = field("peak_bytes")
  skipped[n] = field("steps_skipped")
  finite[n] = field("loss_finite")
  if (precision[n] == "fp32") base = n
}
END {
  printf "\n%-12s %9s %10s %12s %12s %8s  %s\n", "precision", "test acc", "ms/epoch",
    "state MiB", "peak MiB", "skipped", "verdict"
  for (i = 1; i <= n; i++) {
    verdict = "the reference"
    if (i != base) {
      gap = accuracy[base] - accuracy[i]
      if (finite[i] == "false") verdict = "BROKEN: the loss is not a number"
      else if (gap >= 10) verdict = sprintf("BROKEN: %.1f points lost", gap)
      else if (gap <= 0.5) verdict = sprintf("as good as fp32 (%s points)", signed(-gap))
      else verdict = sprintf("%.1f points below fp32", gap)
    }
    printf "%-12s %8.1f%% %10.2f %12.2f %12.2f %8d  %s\n", precision[i], accuracy[i], ms[i],
      state[i] / 1048576, peak[i] / 1048576, skipped[i], verdict
  }
  if (n == 3 && base) {
    printf "\nfp16 keeps its state tensors in %.2fx the bytes of fp32.", state[3] / state[base]
    print " (State: the sum over all tensors of the plan; the arena lets them share memory.)"
  }
}
