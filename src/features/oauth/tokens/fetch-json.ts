import {
  createServiceClient,
  NoServiceAnswer,
  type ServiceRequest,
} from '../../../core/protocol/http/service-client.ts';
import { parseBounded } from '../../../core/protocol/json.ts';

/** The time limit for one document of an authorization server, in milliseconds. */
const timeoutMs = 5_000;

/** The size limit of one document. Keys may contain certificates, but a faulty server must not fill the memory. */
const maxDocumentBytes = 512 * 1024;

const ask = createServiceClient({ timeoutMs, maxBytes: maxDocumentBytes, maxConnections: 16 });

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
 * and with the error of the connection if there is no answer.
 */
export async function fetchJson(url: URL): Promise<Readonly<Record<string, unknown>>> {
  const { status, text } = await fetchAnswer(url);
  if (status !== 200) {
    const isMissing = status >= 400 && status < 500 && status !== 429;
    throw new UnusableDocument(`${url.href} answered with ${status}`, isMissing);
  }
  return readObject(text, url);
}

/** Sends a request to an authorization server. */
export async function fetchAnswer(
  { href }: URL,
  { method = 'GET', headers, body }: Partial<ServiceRequest> = {},
): Promise<{ readonly status: number; readonly text: string }> {
  try {
    const answer = await ask(href, { method, headers: { accept: 'application/json', ...headers }, body });
    return { status: answer.status, text: answer.body.toString() };
  } catch (cause) {
    throw cause instanceof NoServiceAnswer ? new UnusableDocument(`${href} ${cause.message}`) : cause;
  }
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
