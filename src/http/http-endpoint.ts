import type { IncomingMessage, ServerResponse } from 'node:http';

/** Answers one HTTP request to an endpoint. */
export type Endpoint = (incoming: IncomingMessage, outgoing: ServerResponse) => void;
