/** Names of fields and dimensions that contain a secret. */
const secretName =
  /^(?:(?:proxy-)?authorization|(?:set-)?cookie|[\w-]*passw(?:or)?d|[\w-]*secret|(?:[\w-]+[_-])?token|(?:x[_-])?api[_-]?key|private[_-]?key)$/i;

export function isSecretName(name: string): boolean {
  return secretName.test(name);
}
