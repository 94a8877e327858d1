import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { onTestFinished } from 'vitest';

/** Lets a server listen on loopback until the test has finished, and resolves with its port. */
export async function listening<T extends Server>(server: T): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** Starts an HTTP server that answers each request when its body has come, and resolves with its URL. */
export async function listenHttp(answerWith: (outgoing: ServerResponse, method: string) => void): Promise<URL> {
  const server = createServer((incoming, outgoing) => {
    incoming.resume().on('end', () => answerWith(outgoing, incoming.method ?? ''));
  });
  const port = await listening(server);
  onTestFinished(() => server.closeAllConnections());
  return new URL(`http://127.0.0.1:${port}/`);
}

/** Starts a listener that nobody may call, for instance because a hostile server has named it. */
export async function startVictim(): Promise<{ readonly port: number; calls(): number }> {
  let calls = 0;
  const port = await listening(
    createTcpServer((socket) => {
      calls += 1;
      socket.destroy();
    }),
  );
  return { port, calls: () => calls };
}
