import { SluiceError } from "sluice";

/** A problem with a word of a command, by the word's name in the documentation. */
export function invalidWord(field: string, message: string): SluiceError {
  return new SluiceError("invalid_request", `${field} ${message}`, [{ path: [field], message }]);
}
