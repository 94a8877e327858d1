import { joinChunks } from '../../util/join-chunks.ts';
import type { BackpressureGroup } from './backpressure-group.ts';
import type { HttpResponse } from './http-connection.ts';

/**
 * Reads the JSON of a response. Rejects if the body breaks before its end.
 * @param maxBytes stops a server whose response never ends from filling the memory
 * @returns undefined if the body is larger; it is destroyed then
 */
export async function readJsonBody(
  body: HttpResponse['body'],
  flow: BackpressureGroup,
  maxBytes: number,
): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    await flow.read(body, (chunk) => {
      bytes += chunk.length;
      if (bytes <= maxBytes) chunks.push(chunk);
      else body.destroy();
    });
  } catch (cause) {
    if (bytes <= maxBytes) throw cause;
  }
  return bytes <= maxBytes ? joinChunks(chunks, bytes) : undefined;
}
