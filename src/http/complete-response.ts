/** Creates a complete response. Its length is in the headers, so that a response to HEAD has it, too. */
export const textResponse = (text: string, status: number, headers: Readonly<Record<string, string>>): Response =>
  new Response(text, {
    status,
    headers: { 'content-length': String(Buffer.byteLength(text)), 'x-content-type-options': 'nosniff', ...headers },
  });

/** Creates a complete JSON response. */
export const jsonResponse = (value: object, status = 200, headers: Readonly<Record<string, string>> = {}): Response =>
  textResponse(JSON.stringify(value), status, { 'content-type': 'application/json', ...headers });
