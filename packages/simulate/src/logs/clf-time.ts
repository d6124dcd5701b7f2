const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/** `10/Oct/2000` and ` -0700`: the parts that stay the same for a day. */
const dayLength = 11;
const clockAt = dayLength + 1;
const zoneAt = 20;
const zoneLength = 6;
/** `10/Oct/2000:13:55:36 -0700` */
export const clfTimeLength: number = zoneAt + zoneLength;

/** Reads the times of common log lines. The day and the zone are looked up once and then compared. */
export class ClfTime {
  readonly #day: Uint8Array = new Uint8Array(dayLength);
  readonly #zone: Uint8Array = new Uint8Array(zoneLength);
  #dayMs = Number.NaN;

  /** Epoch milliseconds of the time that begins at `at`; NaN if there is none. */
  read(bytes: Buffer, at: number): number {
    for (let i = 0; i < dayLength; i++) if (bytes[at + i] !== this.#day[i]) return this.#begin(bytes, at);
    for (let i = 0; i < zoneLength; i++) if (bytes[at + zoneAt + i] !== this.#zone[i]) return this.#begin(bytes, at);
    return this.#dayMs + readClock(bytes, at + clockAt);
  }

  #begin(bytes: Buffer, at: number): number {
    this.#dayMs = parseDay(
      bytes.toString("latin1", at, at + dayLength),
      bytes.toString("latin1", at + zoneAt, at + clfTimeLength),
    );
    bytes.copy(this.#day, 0, at, at + dayLength);
    bytes.copy(this.#zone, 0, at + zoneAt, at + clfTimeLength);
    return this.#dayMs + readClock(bytes, at + clockAt);
  }
}

/** Epoch milliseconds of midnight in the zone. */
function parseDay(day: string, zone: string): number {
  const [, date, name = "", year] = /^(\d\d)\/(\w{3})\/(\d{4})$/.exec(day) ?? [];
  const [, sign, hours, minutes] = /^ ([+-])(\d\d)(\d\d)$/.exec(zone) ?? [];
  const month = months.indexOf(name);
  if (date === undefined || sign === undefined || month === -1) return Number.NaN;
  const offsetMs = (Number(hours) * 60 + Number(minutes)) * 60_000;
  return Date.UTC(Number(year), month, Number(date)) + (sign === "-" ? offsetMs : -offsetMs);
}

/** Milliseconds of `13:55:36`; NaN if it is no time of day. */
function readClock(bytes: Buffer, at: number): number {
  const colon = 0x3a;
  if (bytes[at + 2] !== colon || bytes[at + 5] !== colon) return Number.NaN;
  const hours = readTwo(bytes, at);
  const minutes = readTwo(bytes, at + 3);
  const seconds = readTwo(bytes, at + 6);
  // 60 is a leap second.
  if (!(hours < 24 && minutes < 60 && seconds <= 60)) return Number.NaN;
  return ((hours * 60 + minutes) * 60 + seconds) * 1000;
}

function readTwo(bytes: Buffer, at: number): number {
  const tens = bytes[at]! - 0x30;
  const ones = bytes[at + 1]! - 0x30;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN;
}
