// A subscriber as Rascal's documentation has it: it posts each message to an
// endpoint, as many at a time as its prefetch, and acks on 200. When COUNT
// messages are settled it prints how many seconds that took from the first on.
//
//   node rascal.js URL QUEUE ENDPOINT PREFETCH COUNT
const { BrokerAsPromised } = require("rascal");

const [url, queue, endpoint, prefetch, count] = process.argv.slice(2);

// One slash in front is the URL's own; the rest is the name, percent-encoded.
const vhost = decodeURIComponent(new URL(url).pathname.slice(1)) || "/";

const config = {
  vhosts: {
    [vhost]: {
      connection: url,
      namespace: false,
      queues: { [queue]: { check: true, assert: false } },
      subscriptions: { work: { queue, prefetch: Number(prefetch) } },
    },
  },
};

async function post(body) {
  const response = await fetch(endpoint, { method: "POST", body });
  await response.arrayBuffer(); // lets the connection be used again
  return response.status === 200;
}

async function main() {
  const broker = await BrokerAsPromised.create(config);
  broker.on("error", fail);
  const subscription = await broker.subscribe("work");
  subscription.on("error", fail);
  let first;
  let settled = 0;
  subscription.on("message", async (message, content, ackOrNack) => {
    const ok = await post(content).catch(fail);
    ackOrNack(ok ? undefined : new Error("not accepted"));
    first ??= process.hrtime.bigint();
    settled += 1;
    if (settled === Number(count)) {
      console.log(`seconds: ${Number(process.hrtime.bigint() - first) / 1e9}`);
      await broker.shutdown();
    }
  });
}

function fail(error) {
  console.error("rascal:", error);
  process.exit(1);
}

main().catch(fail);
