/** The last samples of something live, oldest first, in bounded number. */
export function keepLatest<T>(samples: readonly T[], sample: T, most: number): readonly T[] {
  return samples.length < most ? [...samples, sample] : [...samples.slice(samples.length - most + 1), sample];
}
