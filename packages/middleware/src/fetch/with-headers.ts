/**
 * The answer with these header fields: the same object if its headers are mutable, else a copy. An answer that cannot be
 * copied, such as a WebSocket handshake, is returned unchanged.
 */
export function withHeaders(response: Response, headers: Readonly<Record<string, string>>): Response {
  try {
    return setHeaders(response, headers);
  } catch {
    // Responses of `fetch` and `Response.redirect` have immutable headers.
    const { status } = response;
    return status >= 200 && status <= 599 ? setHeaders(new Response(response.body, response), headers) : response;
  }
}

function setHeaders(response: Response, headers: Readonly<Record<string, string>>): Response {
  for (const name in headers) response.headers.set(name, headers[name]!);
  return response;
}
