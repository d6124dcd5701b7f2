/**
 * The status of Next's answer when a route handler throws: that of `redirect()`, `notFound()`, `forbidden()` or
 * `unauthorized()`, which Next recognizes by their digests, else 500.
 */
export function statusFromThrown(thrown: unknown): number {
  const { digest } = (thrown ?? {}) as { readonly digest?: unknown };
  const meant = /^NEXT_(?:REDIRECT;.*;(30[378]);|HTTP_ERROR_FALLBACK;(40[134]))$/s.exec(String(digest));
  return Number(meant?.[1] ?? meant?.[2] ?? 500);
}
