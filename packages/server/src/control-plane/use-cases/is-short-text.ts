/** Read in a millisecond or two, which is less than another thread takes to be asked. */
const maxShortLength = 2_048;

/** Whether a text in YAML is read at once, rather than in another thread. With anchors, a short text may say much. */
export function isShortText(text: string): boolean {
  return text.length <= maxShortLength && !text.includes("&");
}
