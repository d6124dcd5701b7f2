import type { RecordingFacts } from "../replay/recording-lines.ts";

/** The dimension whose subjects were sampled; undefined if all were recorded. Throws a `RangeError` for several. */
export function findSampledBy(recordings: readonly RecordingFacts[]): string | undefined {
  const samples = recordings.map(({ head }) => head).filter(({ share }) => share < 1);
  const [first, ...others] = new Set(samples.map(({ share_by = "?" }) => share_by));
  if (others.length > 0)
    throw new RangeError(
      `the recordings are samples by ${[first, ...others].join(" and by ")}, and have no subjects in common; replay them one by one`,
    );
  if (samples.length > 1)
    throw new RangeError("each recording has another sample of the subjects; replay them one by one");
  if (samples.length === 1 && recordings.length > 1)
    throw new RangeError("a sample of the subjects cannot be merged with other recordings; replay them one by one");
  return first;
}
