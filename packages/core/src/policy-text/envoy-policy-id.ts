import type { DescriptorEntry } from "../policy/descriptor.ts";

type Step = Pick<DescriptorEntry, "key"> & { readonly value?: string };

const maxLength = 128;

/**
 * The id of the policy of a descriptor's limit: `envoy:messaging/message_type:marketing/to_number`. It is derived from
 * what the descriptor is, not from where it stands, so that it survives edits. `length` distinguishes several limits of
 * one descriptor: `envoy:messaging/to_number/:15m`. Characters that an id may not contain are written as `@` and their
 * code.
 */
export function envoyPolicyId(domain: string, steps: readonly Step[], length?: string): string {
  const parts = steps.map(({ key, value }) => (value === undefined ? safe(key) : `${safe(key)}:${safe(value)}`));
  if (length !== undefined) parts.push(`:${safe(length)}`);
  const id = `envoy:${[safe(domain), ...parts].join("/")}`;
  if (id.length <= maxLength) return id;
  // Nothing else has two of them in a row.
  const end = `@@${digestText(id)}`;
  return `${id.slice(0, maxLength - end.length)}${end}`;
}

function safe(text: string): string {
  return text.replace(/[^A-Za-z0-9._-]/g, (unit) => {
    const code = unit.charCodeAt(0).toString(16);
    return code.length <= 2 ? `@${code.padStart(2, "0")}` : `@u${code.padStart(4, "0")}`;
  });
}

/** 64 bits, the same everywhere and always: FNV-1a over UTF-16 code units. */
function digestText(text: string): string {
  let hash = 0xcbf29ce484222325n;
  for (let i = 0; i < text.length; i++) hash = BigInt.asUintN(64, (hash ^ BigInt(text.charCodeAt(i))) * 0x100000001b3n);
  return hash.toString(16).padStart(16, "0");
}
