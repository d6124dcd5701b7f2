import { SluiceError } from "sluice";

/** The error for an option, or a field of a request, that cannot be used. `message` continues its name: `must be a number`. */
export function invalidRequest(name: string, message: string): SluiceError {
  return new SluiceError("invalid_request", `${name} ${message}`, [{ path: [name], message }]);
}
