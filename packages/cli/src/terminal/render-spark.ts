const blocks = [..." ▁▂▃▄▅▆▇█"];

/** Values as a row of blocks, each as high as its share of `most`. More than none is never shown as none. */
export function renderSpark(values: readonly number[], most: number): string {
  return values
    .map((value) => {
      if (value <= 0 || most <= 0) return blocks[0];
      return blocks[Math.max(1, Math.min(blocks.length - 1, Math.round((value / most) * (blocks.length - 1))))];
    })
    .join("");
}

/** As many values as there are columns, each the largest of those that it stands for. */
export function squeeze(values: readonly number[], columns: number): readonly number[] {
  if (values.length <= columns) return values;
  return Array.from({ length: columns }, (_, column) => {
    const from = Math.floor((column * values.length) / columns);
    const to = Math.max(from + 1, Math.floor(((column + 1) * values.length) / columns));
    return values.slice(from, to).reduce((most, value) => Math.max(most, value), 0);
  });
}
