import { stringify } from "yaml";

/** YAML as people write it, without anchors or folded lines. */
export function renderYaml(value: unknown): string {
  const text = stringify(value, { aliasDuplicateObjects: false, lineWidth: 0 });
  // Terminals interpret such characters, and YAML requires them to be escaped, in double quotes.
  return text.replaceAll(/[\u007f-\u009f]/g, (one) => `\\x${one.charCodeAt(0).toString(16)}`);
}
