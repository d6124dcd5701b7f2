import { CommandError } from "../terminal/terminal.ts";

export interface QuantityBounds {
  readonly least: number;
  readonly most: number;
}

const multiples = { "": 1, k: 1e3, M: 1e6, G: 1e9 } as const;
const byteUnits = { MiB: 1024 ** 2, GiB: 1024 ** 3, TiB: 1024 ** 4 } as const;

/** `250`, `0.5`, `100k`, `1.5M`, `2G`. */
export function parseQuantity(flag: string, text: string, bounds: QuantityBounds): number {
  const [, digits, unit = ""] = /^(\d+(?:\.\d+)?)([kMG]?)$/.exec(text) ?? [];
  return demand(
    flag,
    text,
    Number(digits) * multiples[unit as keyof typeof multiples],
    bounds,
    "a number such as 250, 100k or 1.5M",
  );
}

export function parseWholeQuantity(flag: string, text: string, bounds: QuantityBounds): number {
  const value = parseQuantity(flag, text, bounds);
  if (Number.isInteger(value)) return value;
  throw new CommandError(`${flag} is ${JSON.stringify(text)}; it should be a whole number`);
}

/** `80%` and `0.8`, as a share from 0 to 1. */
export function parseShare(
  flag: string,
  text: string,
  { least, most }: QuantityBounds = { least: 0, most: 1 },
): number {
  const [, digits, percent] = /^(\d+(?:\.\d+)?)(%?)$/.exec(text) ?? [];
  const value = percent === "%" ? Number(digits) / 100 : Number(digits);
  if (value >= least && value <= most) return value;
  throw new CommandError(
    `${flag} is ${JSON.stringify(text)}; it should be a share such as 80% or 0.8, from ${least * 100}% to ${most * 100}%`,
  );
}

/** `512MiB`, `8GiB`. */
export function parseBytes(flag: string, text: string, bounds: QuantityBounds): number {
  const [, digits, unit = ""] = /^(\d+(?:\.\d+)?)(MiB|GiB|TiB)$/.exec(text) ?? [];
  return demand(
    flag,
    text,
    Number(digits) * byteUnits[unit as keyof typeof byteUnits],
    bounds,
    "a size such as 512MiB or 8GiB",
  );
}

function demand(flag: string, text: string, value: number, { least, most }: QuantityBounds, form: string): number {
  if (value >= least && value <= most) return value;
  const range = Number.isNaN(value) ? "" : `, from ${least} to ${most}`;
  throw new CommandError(`${flag} is ${JSON.stringify(text)}; it should be ${form}${range}`);
}
