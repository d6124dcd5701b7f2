import { rawDimension, readDimension } from "../request/read-dimension.ts";
import { type IpAddress, parseIp } from "../subject/ip-address.ts";
import type { Condition, ValueList } from "./compiled-policy.ts";

type Dimensions = Readonly<Record<string, string>>;

/** Whether the request meets a condition. */
export function holds({ dimension, list }: Condition, dimensions: Dimensions): boolean {
  return list === undefined ? rawDimension(dimensions, dimension) !== "" : isOn(list, dimensions);
}

/** Whether the request is on one of the lists. An endpoint is if any reading of it is. */
export function isOnAny(lists: readonly ValueList[], dimensions: Dimensions, readings: readonly string[]): boolean {
  return lists.some((list) => {
    if (list.kind === "texts" && list.dimension === "endpoint") return readings.some((path) => list.texts.has(path));
    return isOn(list, dimensions);
  });
}

/** The same for lists that exempt: an endpoint is on one only if every reading of it is. */
export function isSurelyOnAny(
  lists: readonly ValueList[],
  dimensions: Dimensions,
  readings: readonly string[],
): boolean {
  return lists.some((list) => {
    if (list.kind === "texts" && list.dimension === "endpoint")
      return readings.every((path) => list.texts.has(withoutLastSlash(path)));
    return isOn(list, dimensions);
  });
}

/** A trailing slash means nothing. */
function withoutLastSlash(path: string): string {
  return path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;
}

function isOn(list: ValueList, dimensions: Dimensions): boolean {
  const value = rawDimension(dimensions, list.dimension);
  if (value === "") return false;
  if (list.kind === "texts") return list.texts.has(value) || list.texts.has(readDimension(dimensions, list.dimension));
  const ip = parsedOnce(value);
  return ip !== undefined && list.ranges.has(ip);
}

let lastText = "";
let lastIp: IpAddress | undefined;

/** Many policies may ask about the same address. */
function parsedOnce(text: string): IpAddress | undefined {
  if (text !== lastText) {
    lastIp = parseIp(text);
    lastText = text;
  }
  return lastIp;
}
