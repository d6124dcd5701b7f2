/** Path and query of a request's address, which is absolute and in normal form. */
export function pathOfUrl(url: string): string {
  const authorityAt = url.indexOf("://") + 3;
  const pathAt = url.indexOf("/", authorityAt);
  return pathAt === -1 ? "/" : url.slice(pathAt);
}
