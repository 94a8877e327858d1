// What each request of a client of 2026-07-28 says of itself.
import { statelessVersion } from '../lib/mcp-session.mjs';

/** The members of its `_meta`, as JSON without the braces. */
export const envelopeOf = (capabilities = {}) =>
  JSON.stringify({
    'io.modelcontextprotocol/protocolVersion': statelessVersion,
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  }).slice(1, -1);
