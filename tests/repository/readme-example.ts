export interface ReadmeExample {
  readonly code: string;
  readonly output: string;
}

/** The first TypeScript block of a page, and its output in the text block after it. */
export function findExample(page: string): ReadmeExample {
  const match = /^```ts\n([\s\S]*?)^```$[\s\S]*?^```text\n([\s\S]*?)^```$/m.exec(page);
  if (match?.[1] === undefined || match[2] === undefined) {
    throw new Error("the page needs a ```ts block, followed by a ```text block with what it prints");
  }
  return { code: match[1], output: match[2] };
}
