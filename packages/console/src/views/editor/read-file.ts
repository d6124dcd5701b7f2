/** Larger logs do not fit into one request: `sluice simulate` reads logs of any size. */
const mostBytes = 11 * 1024 * 1024;

export async function readFileBase64(file: File): Promise<string> {
  if (file.size > mostBytes)
    throw new Error(
      `${file.name} has more than 11 MB. Compress it with gzip, or run sluice simulate, which reads logs of any size.`,
    );
  const bytes = new Uint8Array(await file.arrayBuffer());
  const parts: string[] = [];
  for (let at = 0; at < bytes.length; at += 0x8000) parts.push(String.fromCharCode(...bytes.subarray(at, at + 0x8000)));
  return btoa(parts.join(""));
}
