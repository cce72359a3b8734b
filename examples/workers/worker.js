// A worker in JavaScript: one JSON line per message in, one per answer out.
// Standard output belongs to the answers; use console.error for the log.
const readline = require("node:readline");

// handle may await; with "pipeline: 8" it is called 8 times before it answers.
async function handle(request) {
  const order = JSON.parse(request.body);
  if (!order.sku) {
    return { outcome: "drop", reason: "the order has no sku" };
  }
  if (order.sku === "SOON" && request.attempt < 2) {
    return { outcome: "retry_after", delay: "1s", reason: "back in stock soon" };
  }
  return { outcome: "ack" };
}

readline.createInterface({ input: process.stdin }).on("line", async (line) => {
  const request = JSON.parse(line);
  const answer = await handle(request).catch((error) => ({ outcome: "retry", reason: error.message }));
  process.stdout.write(JSON.stringify({ id: request.id, ...answer }) + "\n");
});
