/** Runs the steps of a client in turn, and prints the results by name as one JSON object. A step that throws results in its message. */
export async function printSteps(steps) {
  const results = {};
  for (const [name, step] of Object.entries(steps)) {
    try {
      results[name] = { value: await step() };
    } catch (error) {
      results[name] = { error: error instanceof Error ? error.message : String(error) };
    }
  }
  process.stdout.write(`${JSON.stringify(results)}\n`);
}
