import { SluiceError } from "sluice";

/** What is wrong with a word of a command, by the name that the word has in the documentation. */
export function invalidWord(field: string, message: string): SluiceError {
  return new SluiceError("invalid_request", `${field} ${message}`, [{ path: [field], message }]);
}
