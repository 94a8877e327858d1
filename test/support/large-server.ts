/** A server whose tool returns a text of `bytes` after `ms`. */
export const largeServer = `
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line);
    if (id === undefined) return;
    const serverInfo = { name: 'large', version: '1' };
    const opened = { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo };
    const { bytes = 10, ms = 0 } = params?.arguments ?? {};
    const called = { content: [{ type: 'text', text: 'x'.repeat(bytes) }] };
    const result = method === 'initialize' ? opened : called;
    setTimeout(() => console.log(JSON.stringify({ jsonrpc: '2.0', id, result })), ms);
  });`;
