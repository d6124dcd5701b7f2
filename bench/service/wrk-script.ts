/** A script for wrk that posts a body in which `%d` is the subject, cycling through `subjects`. */
export function wrkScript(body: string, subjects: number = 1_000): string {
  const written = body.includes("%d") ? `string.format('${body}', n % ${subjects})` : `'${body}'`;
  return `wrk.method = "POST"
wrk.headers["content-type"] = "application/json"
local n = 0
request = function()
  n = n + 1
  return wrk.format(nil, nil, nil, ${written})
end
`;
}
