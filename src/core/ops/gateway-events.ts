import type { CallEvent } from '../call/call-events.ts';
import type { ConnectionEvent } from '../http/connection-events.ts';
import type { SessionEvent } from '../session/session-events.ts';
import type { StoreEvent } from '../store/store-events.ts';
import type { Emit } from '../util/telemetry/emit.ts';
import type { ServerEvent } from './server-events.ts';
import type { SharedServerEvent } from './shared-server-events.ts';

/**
 * Everything that a gateway reports. Each room declares its own events. Those of the assembly and of the features are
 * here. Sinks choose by `type`.
 */
export type GatewayEvent = CallEvent | ConnectionEvent | ServerEvent | SessionEvent | SharedServerEvent | StoreEvent;

/** Receives every event of a gateway: a log, metrics, the health of servers, the status page. */
export type GatewaySink = Emit<GatewayEvent>;
