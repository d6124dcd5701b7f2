/** Path and query of a request's URL, which is absolute and normalized. */
export function pathFromUrl(url: string): string {
  const authorityAt = url.indexOf("://") + 3;
  const pathAt = url.indexOf("/", authorityAt);
  return pathAt === -1 ? "/" : url.slice(pathAt);
}
