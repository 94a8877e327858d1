import { parseBounded } from '../../../core/protocol/json.ts';
import { timeLimitSignal } from '../../../core/util/timing/time-limit.ts';

/** The time limit for one document of an authorization server, in milliseconds. */
const timeoutMs = 5_000;

/** The size limit of one document. Keys may contain certificates, but a faulty server must not fill the memory. */
const maxDocumentBytes = 512 * 1024;

/** The error for an unusable answer of an authorization server. The message is for the operator's log. */
export class UnusableDocument extends Error {
  /** True if the server has no such document. The document may then be at another URL. */
  readonly isMissing: boolean;

  constructor(message: string, isMissing = false) {
    super(message);
    this.isMissing = isMissing;
  }
}

/**
 * Fetches the JSON object at a URL of an authorization server. Rejects with `UnusableDocument` for any other answer,
 * and with the error of `fetch` if there is no answer.
 */
export async function fetchJson(url: URL): Promise<Readonly<Record<string, unknown>>> {
  const { status, text } = await fetchAnswer(url);
  if (status !== 200) {
    const isMissing = status >= 400 && status < 500 && status !== 429;
    throw new UnusableDocument(`${url.href} answered with ${status}`, isMissing);
  }
  return readObject(text, url);
}

/** The request to an authorization server, beside the limits that all have in common. */
export type RequestToIssuer = Pick<RequestInit, 'method' | 'body'> & { readonly headers?: Record<string, string> };

/**
 * Sends a request to an authorization server. A redirect is not followed, since it could lead anywhere. The answer has
 * limits of time and size. The text is empty unless the status is 200.
 */
export async function fetchAnswer(
  url: URL,
  request: RequestToIssuer = {},
): Promise<{ readonly status: number; readonly text: string }> {
  const response = await fetch(url, {
    ...request,
    headers: { accept: 'application/json', ...request.headers },
    redirect: 'manual',
    signal: timeLimitSignal(timeoutMs),
  });
  const { status } = response;
  if (status === 200) return { status, text: await readText(response, url) };
  await response.body?.cancel();
  return { status, text: '' };
}

/** Reads the JSON object in an answer of this URL, or throws `UnusableDocument`. */
export function readObject(text: string, { href }: URL): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = parseBounded(text, maxDocumentBytes);
  } catch {
    throw new UnusableDocument(`${href} is not JSON`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new UnusableDocument(`${href} is not a JSON object`);
  }
  return value as Record<string, unknown>;
}

async function readText({ body }: Response, url: URL): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.length;
    // The throw leaves the loop, which cancels the rest of the body.
    if (size > maxDocumentBytes) throw new UnusableDocument(`${url.href} is larger than ${maxDocumentBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
