import { hostname } from 'node:os';

/** The name of this instance in telemetry. */
export const instanceName = `${hostname()}:${process.pid}`;
