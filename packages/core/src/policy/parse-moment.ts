const moment = /^(\d{4}-\d\d-\d\d)(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d))?$/;

/** `2027-01-31`, in UTC, or `2027-01-31T12:00:00Z`, in milliseconds since 1970. Undefined for anything else. */
export function parseMoment(text: string): number | undefined {
  const day = moment.exec(text)?.[1];
  if (day === undefined || Number.isNaN(Date.parse(text))) return undefined;
  // JavaScript reads the 31st of February as the 3rd of March.
  return new Date(day).toISOString().startsWith(day) ? Date.parse(text) : undefined;
}
