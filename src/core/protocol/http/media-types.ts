/** The answers that a client's `Accept` header allows to its POST (2025-11-25, basic/transports). */
export interface Accepts {
  readonly json: boolean;
  readonly sse: boolean;
}

const anyType: Accepts = { json: true, sse: true };
const sdkAccept = 'application/json, text/event-stream'; // the official SDKs send exactly this: no parsing needed

/** Reads `Accept` (RFC 9110, section 12.5.1). No header and wildcards allow both; `q=0` forbids. */
export function readAccept(header: string | undefined): Accepts {
  if (header === undefined || header === sdkAccept || header.trim() === '') return anyType;
  const qualities = new Map<string, boolean>();
  for (const range of header.toLowerCase().split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim());
    qualities.set(type, !parameters.some((parameter) => /^q=0(\.0{0,3})?$/.test(parameter)));
  }
  // The most specific range that matches decides.
  const allows = (type: string, family: string): boolean =>
    qualities.get(type) ?? qualities.get(family) ?? qualities.get('*/*') ?? false;
  return { json: allows('application/json', 'application/*'), sse: allows('text/event-stream', 'text/*') };
}

/** True for the `Accept` of a browser that opens a page. No MCP client asks for HTML. */
export const acceptsPage = (accept: string | undefined): boolean =>
  accept !== undefined && /\btext\/html\b/i.test(accept) && !/\btext\/event-stream\b/i.test(accept);

/** True for `application/json`, with no charset or with UTF-8 (RFC 8259, section 8.1). */
export function isJsonContentType(header: string | undefined): boolean {
  if (header === 'application/json') return true;
  const [type, ...parameters] = (header ?? '')
    .toLowerCase()
    .split(';')
    .map((part) => part.trim());
  if (type !== 'application/json') return false;
  const charset = parameters.find((parameter) => parameter.startsWith('charset='));
  return charset === undefined || /^charset="?utf-?8"?$/.test(charset);
}
