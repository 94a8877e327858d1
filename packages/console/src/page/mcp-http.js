// The parts that the playground's clients of both eras share.

import { request as sendHttp } from './api.js';

/** The media types that a client accepts for the answer of a POST. */
export const jsonAndEvents = 'application/json, text/event-stream';

/** Sends a request through the admin port to the endpoint of a server. */
export const sendToServer = (path, token, { headers, ...options }) =>
  sendHttp(path, {
    ...options,
    headers: { ...(token !== '' && { 'x-gangway-authorization': `Bearer ${token}` }), ...headers },
  }).catch((error) => {
    // The words of browsers differ, and none of them names the gateway.
    throw error instanceof TypeError ? new Error('The gateway does not respond.', { cause: error }) : error;
  });

export const isEventStream = ({ headers }) => (headers.get('content-type') ?? '').startsWith('text/event-stream');

/** Reads the body of an answer that is not a stream. */
export async function readJson(response) {
  const type = response.headers.get('content-type') ?? '';
  if (!type.startsWith('application/json')) throw new Error(`The gateway answered ${response.status}.`);
  return response.json();
}

/** Returns the result of a response; throws its error. */
export function resultOf({ error, result }) {
  if (error !== undefined) throw Object.assign(new Error(error.message), { code: error.code });
  return result;
}

/** Returns all items of a list, over its pages. */
export async function listAll(client, method, member) {
  const items = [];
  let cursor;
  do {
    const page = await client.request(method, cursor === undefined ? {} : { cursor });
    items.push(...(page[member] ?? []));
    cursor = page.nextCursor;
  } while (cursor !== undefined && items.length < 10_000);
  return items;
}

/** The error of a request that the person cancels. */
export const cancelled = () => new Error('You cancelled the request.');
