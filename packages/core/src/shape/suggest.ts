/**
 * The known word that was most likely meant, if one is near enough: case, hyphens and underscores do not count, and
 * about one letter in three may be wrong, missing, extra or swapped with its neighbour.
 */
export function suggest(word: string, known: Iterable<string>): string | undefined {
  if (word.length > maxWordLength) return undefined;
  const plainWord = plain(word);
  let nearest: string | undefined;
  let nearestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of known) {
    const plainCandidate = plain(candidate);
    const tolerated = Math.max(1, Math.floor(Math.min(plainWord.length, plainCandidate.length) / 3));
    if (Math.abs(plainWord.length - plainCandidate.length) > tolerated) continue;
    const distance = editDistance(plainWord, plainCandidate);
    if (distance <= tolerated && distance < Math.min(nearestDistance, plainCandidate.length)) {
      nearest = candidate;
      nearestDistance = distance;
    }
  }
  return nearest;
}

/** No word of ours is half as long, however many hyphens are added. */
const maxWordLength = 64;

/** With more keys than this, none is compared: that would take seconds for a megabyte of them. */
const maxKeysCompared = 1_000;

/** Whether one of an object's keys was probably meant to be `key`. */
export function hasMisspelt(object: object, key: string): boolean {
  return Object.keys(object)
    .slice(0, maxKeysCompared)
    .some((written) => written !== key && suggest(written, [key]) !== undefined);
}

function plain(word: string): string {
  return word.toLowerCase().replaceAll(/[\s_-]/g, "");
}

/** How many insertions, deletions, replacements and swaps of neighbours turn one text into the other. */
export function editDistance(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const differs = from[row - 1] === to[column - 1] ? 0 : 1;
      let best = Math.min(last[column]! + 1, current[column - 1]! + 1, last[column - 1]! + differs);
      const swapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      if (swapped) best = Math.min(best, beforeLast[column - 2]! + 1);
      current.push(best);
    }
    beforeLast = last;
    last = current;
  }
  return last[to.length]!;
}
