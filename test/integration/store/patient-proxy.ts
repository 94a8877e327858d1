import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A port that stays open while the gateway behind it is restarted, as behind a load balancer. */
export interface PatientProxy {
  readonly port: number;
  close(): Promise<void>;
}

/** The pause before the next attempt to connect to a gateway that does not listen yet. */
const retryMs = 20;

/** Starts a proxy whose connections wait until something listens on the target, which may change with a restart. */
export async function startPatientProxy(target: () => number): Promise<PatientProxy> {
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (client) => {
    open.add(client);
    client.on('error', () => client.destroy()).once('close', () => open.delete(client));
    const join = (): void => {
      if (client.destroyed) return;
      const upstream = connect({ port: target(), host: '127.0.0.1', allowHalfOpen: true });
      open.add(upstream);
      upstream.once('close', () => open.delete(upstream));
      const retry = (): void => void setTimeout(join, retryMs).unref();
      upstream.once('error', retry);
      upstream.once('connect', () => {
        upstream.off('error', retry).on('error', () => client.destroy());
        upstream.once('close', () => client.destroy());
        client.once('close', () => upstream.destroy());
        upstream.pipe(client);
        client.pipe(upstream);
      });
    };
    join();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
