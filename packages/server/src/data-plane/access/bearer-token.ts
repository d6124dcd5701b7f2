/** The token of `Authorization: Bearer …`. Undefined if there is none. */
export function findBearerToken(headers: { readonly authorization?: string | undefined }): string | undefined {
  const { authorization } = headers;
  if (authorization === undefined) return undefined;
  return /^bearer +([^ ]+) *$/i.exec(authorization)?.[1] ?? "";
}
