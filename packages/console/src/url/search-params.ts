/** What a view reads from the address. Anything that does not belong there is ignored, never an error: addresses are typed and cut. */

export type Search = Readonly<Record<string, unknown>>;

export function oneOf<T extends string>(value: unknown, values: readonly T[], fallback: T): T {
  return values.find((one) => one === value) ?? fallback;
}

/** At most `most` characters; empty is absent. Numbers are texts too: `?q=42`. */
export function textParam(value: unknown, most = 256): string | undefined {
  const text = typeof value === "number" || typeof value === "boolean" ? String(value) : value;
  return typeof text === "string" && text !== "" ? text.slice(0, most) : undefined;
}

export function numberParam(value: unknown, min: number, max: number): number | undefined {
  const number = typeof value === "string" && value !== "" ? Number(value) : value;
  return typeof number === "number" && Number.isInteger(number) && number >= min && number <= max ? number : undefined;
}

/** A path within the console, and nothing that leads elsewhere: `//host`, `/\host` and `https:` would leave it. */
export function safeReturnPath(value: unknown): string {
  if (typeof value !== "string" || !/^\/(?![/\\])/.test(value) || /[\p{Cc}\\]/u.test(value)) return "/";
  return value.startsWith("/sign-in") || value.startsWith("/api/") ? "/" : value.slice(0, 2_048);
}

/** The address has no parameter that says the default. */
export function withoutDefaults<T extends Record<string, unknown>>(search: T, defaults: Partial<T>): Partial<T> {
  const kept = Object.entries(search).filter(([name, value]) => value !== undefined && value !== defaults[name]);
  return Object.fromEntries(kept) as Partial<T>;
}
