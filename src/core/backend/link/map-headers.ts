import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { OpenBackend } from '../backend.ts';
import { Interceptor, linkBackends, type Outgoing } from './link.ts';

/** Changes the headers that travel with the messages of a client. */
type MapHeaders = (headers: ForwardedHeaders) => ForwardedHeaders;

class HeaderMap extends Interceptor {
  readonly #map: MapHeaders;

  constructor(map: MapHeaders) {
    super();
    this.#map = map;
  }

  override onSend({ message, headers }: Outgoing): Outgoing {
    return { message, headers: headers && this.#map(headers) };
  }
}

/** Opens backends that see other headers: with each message, and when they open. */
export const withMappedHeaders = (open: OpenBackend, map: MapHeaders): OpenBackend => {
  const linked = linkBackends(open, [() => new HeaderMap(map)]);
  return (events, opening) => {
    const { headers } = opening ?? {};
    return linked(events, headers ? { ...opening, headers: () => map(headers()) } : opening);
  };
};
