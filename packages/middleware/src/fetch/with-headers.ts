/**
 * The answer with these header fields: the same one where its fields can be set, else a copy. An answer that cannot be
 * copied, such as that of a WebSocket's handshake, goes out as it is.
 */
export function withHeaders(response: Response, headers: Readonly<Record<string, string>>): Response {
  try {
    return setHeaders(response, headers);
  } catch {
    // What `fetch` and `Response.redirect` answer with does not let its fields be set.
    const { status } = response;
    return status >= 200 && status <= 599 ? setHeaders(new Response(response.body, response), headers) : response;
  }
}

function setHeaders(response: Response, headers: Readonly<Record<string, string>>): Response {
  for (const name in headers) response.headers.set(name, headers[name]!);
  return response;
}
