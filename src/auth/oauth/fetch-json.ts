/** An authorization server takes no longer than this for one document, in milliseconds. */
const timeoutMs = 5_000;

/** Bytes of one document: certificates can be among keys, but a server gone wrong must not fill the memory. */
const maxDocumentBytes = 512 * 1024;

/** What an authorization server says is not what can be used; the message is for the operator's log. */
export class UnusableDocument extends Error {
  /** True if the server said that there is no such document, so that there may be one at another place. */
  readonly isMissing: boolean;

  constructor(message: string, isMissing = false) {
    super(message);
    this.isMissing = isMissing;
  }
}

/**
 * The JSON object at a URL of an authorization server. A redirect is not followed: it could lead anywhere. Rejects with
 * `UnusableDocument` for what is none, and with what `fetch` throws where nothing came.
 */
export async function fetchJson(url: URL): Promise<Readonly<Record<string, unknown>>> {
  const response = await fetch(url, {
    headers: { accept: 'application/json' },
    redirect: 'manual',
    signal: AbortSignal.timeout(timeoutMs),
  });
  if (response.status !== 200) {
    await response.body?.cancel();
    const isMissing = response.status >= 400 && response.status < 500 && response.status !== 429;
    throw new UnusableDocument(`${url.href} answered with ${response.status}`, isMissing);
  }
  const text = await readText(response, url);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new UnusableDocument(`${url.href} is not JSON`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new UnusableDocument(`${url.href} is not a JSON object`);
  }
  return value as Record<string, unknown>;
}

async function readText({ body }: Response, url: URL): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.length;
    // Leaving the loop cancels the rest.
    if (size > maxDocumentBytes) throw new UnusableDocument(`${url.href} is larger than ${maxDocumentBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
