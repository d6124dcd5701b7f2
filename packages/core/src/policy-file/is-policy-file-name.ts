/** Whether a name in a folder is a policy file's. Hidden files and editors' leftovers are not. */
export function isPolicyFileName(name: string): boolean {
  return /\.(ya?ml|json)$/i.test(name) && !/^[.#~]/.test(name);
}
