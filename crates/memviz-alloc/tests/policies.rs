//! Each policy at its edges: rounding, limits, what a free and a miss do. Expectations are read off MLX's sources.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use memviz_alloc::{
    AllocError, Block, BlockId, Engine, Freed, Malloc, MetalDevice, Place, Policy, Pressure, RESOURCE_LIMIT,
};
use memviz_trace::Action;

const PAGE: u64 = 16 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// An engine with memory that never ends, and what it told.
struct Run {
    engine: Engine,
    next: u64,
    told: Vec<(Action, u64)>,
}

impl Run {
    fn new(policy: Policy) -> Run {
        Run { engine: Engine::new(policy), next: 0, told: Vec::new() }
    }

    fn try_malloc(&mut self, size: u64) -> Result<Option<BlockId>, AllocError> {
        let told = &mut self.told;
        let mut sink = |action, block: Block, _| told.push((action, block.size));
        Ok(match self.engine.malloc(size, &mut sink)? {
            Malloc::Reused(id) => Some(id),
            Malloc::Null => None,
            Malloc::Needs(need) => {
                self.next += 1;
                let block = Block { addr: self.next, size: need.size, place: need.place };
                Some(self.engine.commit(need, block, None, &mut sink))
            }
        })
    }

    fn malloc(&mut self, size: u64) -> BlockId {
        self.try_malloc(size).unwrap().expect("a block")
    }

    fn free(&mut self, id: BlockId) -> Freed {
        let told = &mut self.told;
        self.engine.free(id, &mut |action, block: Block, _| told.push((action, block.size))).unwrap()
    }

    fn set_cache_limit(&mut self, limit: u64) -> u64 {
        let told = &mut self.told;
        self.engine.set_cache_limit(limit, &mut |action, block: Block, _| told.push((action, block.size)))
    }

    /// Active and cached bytes.
    fn sums(&self) -> (u64, u64) {
        let usage = self.engine.usage();
        (usage.active, usage.cached)
    }

    fn take_told(&mut self) -> Vec<(Action, u64)> {
        std::mem::take(&mut self.told)
    }
}

fn metal() -> MetalDevice {
    MetalDevice::named("m3-16gb").unwrap()
}

fn cpu() -> Policy {
    Policy::cpu_0_32(16 * GIB)
}

#[test]
fn sixty_four_mib_move_between_active_and_cached() {
    let roomy = Policy { cache_limit: GIB, ..cpu() };
    for policy in [Policy::metal(&metal()), Policy::cuda(24 * GIB), roomy] {
        let mut run = Run::new(policy);
        let block = run.malloc(64 * MIB);
        assert_eq!(run.sums(), (64 * MIB, 0));
        run.free(block);
        assert_eq!(run.sums(), (0, 64 * MIB));
        assert_eq!(run.malloc(64 * MIB), block);
        assert_eq!(run.sums(), (64 * MIB, 0));
        let tally = run.engine.counters().total();
        assert_eq!((tally.hits, tally.misses), (1, 1));
    }
    let mut run = Run::new(cpu());
    let block = run.malloc(64 * MIB);
    assert!(matches!(run.free(block), Freed::ToHeap(_)), "more than the CPU's default limit of 32 MiB");
}

#[test]
fn metal_rounds_above_one_page() {
    let mut run = Run::new(Policy::metal(&metal()));
    for (request, size) in
        [(1, 1), (255, 255), (256, 256), (PAGE - 1, PAGE - 1), (PAGE, PAGE), (PAGE + 1, 2 * PAGE), (2 * PAGE, 2 * PAGE)]
    {
        let id = run.malloc(request);
        assert_eq!(run.engine.block(id).unwrap().size, size, "{request}");
    }
    assert_eq!(run.try_malloc(0), Ok(None), "no buffer, and nothing counted");
    let limit = metal().max_buffer;
    assert_eq!(run.try_malloc(limit + 1), Err(AllocError::TooLarge { requested: limit + 1, limit }));
}

#[test]
fn cuda_rounds_to_powers_of_two_below_one_page() {
    let mut run = Run::new(Policy::cuda(24 * GIB));
    for (request, size) in [
        (1, 8),
        (8, 8),
        (9, 16),
        (16, 16),
        (17, 32),
        (8192, 8192),
        (8193, PAGE),
        (PAGE - 1, PAGE),
        (PAGE, PAGE),
        (PAGE + 1, 2 * PAGE),
    ] {
        let id = run.malloc(request);
        assert_eq!(run.engine.block(id).unwrap().size, size, "{request}");
    }
    let before = run.engine.usage();
    let empty = run.malloc(0);
    assert_eq!(run.engine.usage(), before, "a buffer that no counter knows");
    assert!(matches!(run.free(empty), Freed::ToHeap(Block { place: Place::Empty, .. })));
}

#[test]
fn small_blocks_fill_their_pool_and_come_back() {
    for (policy, size, capacity) in [(Policy::cuda(24 * GIB), 8, 8192), (Policy::metal(&metal()), 255, 4096)] {
        let mut run = Run::new(policy);
        let ids: Vec<BlockId> = (0..=capacity).map(|_| run.malloc(size)).collect();
        let is_small = |run: &Run, id| run.engine.block(id).unwrap().place == Place::Small;
        assert_eq!(ids.iter().filter(|&&id| is_small(&run, id)).count(), capacity);
        assert!(!is_small(&run, ids[capacity]));
        run.free(ids[0]);
        run.engine.clear_cache(&mut ());
        let again = run.malloc(size);
        assert!(is_small(&run, again));
    }
    let mut run = Run::new(Policy::metal(&metal()));
    let id = run.malloc(256);
    assert_eq!(run.engine.block(id).unwrap().place, Place::Device, "the heap is for less than 256 bytes");
}

#[test]
fn the_cpu_recycles_what_fits_and_trims_when_the_limit_is_set() {
    let mut run = Run::new(cpu());
    let ids: Vec<BlockId> = [16 * MIB, 16 * MIB, 1].map(|size| run.malloc(size)).to_vec();
    run.take_told();
    for id in ids {
        run.free(id);
    }
    let (cached, freed) = (Action::FreeActiveToCache, Action::FreeActiveToOs);
    assert_eq!(run.take_told(), [(cached, 16 * MIB), (cached, 16 * MIB), (freed, 1)]);
    assert_eq!(run.set_cache_limit(20 * MIB), 32 * MIB);
    assert_eq!(run.take_told(), [(Action::FreeCacheToOs, 16 * MIB)], "at once, the oldest first");
    assert_eq!(run.set_cache_limit(0), 20 * MIB);
    assert_eq!(run.sums(), (0, 0));
    let empty = run.malloc(0);
    run.take_told();
    run.free(empty);
    assert_eq!(run.take_told(), [(freed, 0)], "a block of 0 bytes is never cached");
}

#[test]
fn gpus_recycle_while_below_the_limit_and_trim_in_malloc() {
    for policy in [Policy::metal(&metal()), Policy::cuda(24 * GIB)] {
        let mut run = Run::new(policy);
        run.set_cache_limit(MIB);
        let ids = [MIB - PAGE, 4 * MIB, PAGE].map(|size| run.malloc(size));
        let goes_to_cache: Vec<bool> = ids.iter().map(|&id| run.free(id) == Freed::Cached).collect();
        assert_eq!(goes_to_cache, [true, true, false], "one block may carry it over, the next may not");
        run.take_told();
        run.set_cache_limit(0);
        assert_eq!(run.take_told(), [], "nothing at once");
        run.malloc(8 * MIB);
        let evicted = Action::FreeCacheToOs;
        assert_eq!(run.take_told(), [(Action::AllocNew, 8 * MIB), (evicted, MIB - PAGE), (evicted, 4 * MIB)]);
        assert_eq!(run.sums().1, 0);
    }
}

#[test]
fn a_hit_trims_a_gpus_cache_too() {
    let mut run = Run::new(Policy::cuda(24 * GIB));
    let ids = [MIB, 2 * MIB, 4 * MIB].map(|size| run.malloc(size));
    for id in ids {
        run.free(id);
    }
    run.set_cache_limit(4 * MIB);
    run.take_told();
    run.malloc(2 * MIB);
    assert_eq!(run.take_told(), [(Action::AllocReuse, 2 * MIB), (Action::FreeCacheToOs, MIB)]);
}

#[test]
fn pressure_releases_what_is_missing() {
    let mut cuda = Run::new(Policy { memory_limit: 100 * MIB, ..Policy::cuda(24 * GIB) });
    let ids = [10 * MIB, 20 * MIB, 30 * MIB].map(|size| cuda.malloc(size));
    for id in ids {
        cuda.free(id);
    }
    cuda.take_told();
    cuda.malloc(40 * MIB);
    assert_eq!(cuda.take_told(), [(Action::AllocNew, 40 * MIB)], "exactly at the limit");
    cuda.malloc(PAGE);
    assert_eq!(cuda.take_told(), [(Action::FreeCacheToOs, 10 * MIB), (Action::AllocNew, PAGE)]);

    let mut metal = Run::new(Policy { memory_limit: 100 * MIB, ..Policy::metal(&metal()) });
    let ids = [10 * MIB, 20 * MIB, 30 * MIB].map(|size| metal.malloc(size));
    for id in ids {
        metal.free(id);
    }
    metal.take_told();
    metal.malloc(40 * MIB);
    assert_eq!(metal.take_told(), [(Action::AllocNew, 40 * MIB)], "at the limit 0 bytes are released");
    metal.malloc(PAGE);
    assert_eq!(metal.take_told(), [(Action::FreeCacheToOs, 10 * MIB), (Action::AllocNew, PAGE)]);
}

#[test]
fn metals_limits_come_from_the_device() {
    let device = metal();
    let policy = Policy::metal(&device);
    assert_eq!(policy.memory_limit, (0.95 * device.memory as f64) as u64, "less than 1.5 working sets");
    let small = Policy::metal(&MetalDevice::new(16 * GIB, 10 * GIB));
    assert_eq!((small.memory_limit, small.cache_limit), (15 * GIB, 15 * GIB), "1.5 working sets");
    assert_eq!(small.pressure, Pressure::AtGcLimit((0.95 * (10 * GIB) as f64) as u64));
    assert_eq!(policy.max_blocks, RESOURCE_LIMIT);
    let mut engine = Engine::new(policy);
    assert_eq!(engine.set_wired_limit(device.working_set), Ok(0));
    assert_eq!(engine.set_wired_limit(1), Ok(device.working_set));
    let refused = AllocError::WiredLimit { requested: device.working_set + 1, limit: device.working_set };
    assert_eq!(engine.set_wired_limit(device.working_set + 1), Err(refused));
    assert_eq!(Engine::new(cpu()).set_wired_limit(u64::MAX), Ok(0), "only Metal has one");
}

#[test]
fn at_metals_resource_limit_the_cache_is_emptied_and_then_malloc_fails() {
    let mut run = Run::new(Policy { max_blocks: 3, ..Policy::metal(&metal()) });
    let ids = [MIB, 2 * MIB, 4 * MIB].map(|size| run.malloc(size));
    assert_eq!(run.try_malloc(8 * MIB), Err(AllocError::ResourceLimit { requested: 8 * MIB, limit: 3 }));
    run.free(ids[1]);
    run.free(ids[0]);
    run.take_told();
    run.malloc(8 * MIB);
    let evicted = Action::FreeCacheToOs;
    assert_eq!(run.take_told(), [(evicted, MIB), (evicted, 2 * MIB), (Action::AllocNew, 8 * MIB)]);
    assert_eq!(run.engine.usage().blocks, 2);
}

#[test]
fn cudas_guard_gives_back_a_twentieth_of_the_device() {
    let mut engine = Engine::new(Policy::cuda(1000 * MIB));
    let mut addr = 0;
    let mut told = Vec::new();
    let mut malloc = |engine: &mut Engine, size, driver_bytes| {
        addr += 1;
        let mut sink = |action, block: Block, _| told.push((action, block.size));
        let Malloc::Needs(need) = engine.malloc(size, &mut sink).unwrap() else { panic!("a miss") };
        engine.commit(need, Block { addr, size: need.size, place: need.place }, Some(driver_bytes), &mut sink)
    };
    let ids = [40 * MIB, 30 * MIB, 20 * MIB, 10 * MIB].map(|size| malloc(&mut engine, size, 0));
    for id in ids {
        engine.free(id, &mut ()).unwrap();
    }
    malloc(&mut engine, 200 * MIB, 950 * MIB);
    malloc(&mut engine, 300 * MIB, 950 * MIB + 1);
    let new = |size| (Action::AllocNew, size * MIB);
    let evicted = |size| (Action::FreeCacheToOs, size * MIB);
    assert_eq!(told[4..], [new(200), evicted(40), evicted(30), new(300)]);
}

#[test]
fn before_0_32_the_cpu_has_no_cache() {
    let mut run = Run::new(Policy::cpu_0_28(16 * GIB));
    let id = run.malloc(MIB);
    assert!(matches!(run.free(id), Freed::ToHeap(_)));
    assert_eq!(run.set_cache_limit(GIB), 0);
    let id = run.malloc(MIB);
    assert!(matches!(run.free(id), Freed::ToHeap(_)), "the limit changes nothing");
}

#[test]
fn wrong_calls_change_nothing() {
    let mut run = Run::new(Policy::metal(&metal()));
    let foreign = Block { addr: 0x9000, size: MIB, place: Place::Device };
    let wrapper = run.engine.make_buffer(foreign, &mut ()).unwrap().unwrap();
    let own = run.malloc(MIB);
    let before = run.engine.usage();
    assert_eq!((before.active, before.blocks), (2 * MIB, 2));
    assert!(matches!(run.engine.free(wrapper, &mut ()), Err(AllocError::WrongCall { give_back: "release", .. })));
    assert!(matches!(run.engine.release_wrapper(own, &mut ()), Err(AllocError::WrongCall { give_back: "free", .. })));
    assert_eq!(run.engine.usage(), before);
    run.free(own);
    assert!(matches!(run.engine.free(own, &mut ()), Err(AllocError::UnknownBuffer { .. })), "freed already");
    assert_eq!(run.engine.release_wrapper(wrapper, &mut ()).unwrap().addr, 0x9000);
    assert_eq!(run.sums(), (0, MIB));
    assert_eq!(Engine::new(cpu()).make_buffer(foreign, &mut ()), Ok(None), "only Metal wraps");
}

#[test]
fn sums_never_leave_64_bits() {
    let mut run = Run::new(Policy { max_request: u64::MAX, ..cpu() });
    run.malloc(u64::MAX - 10);
    assert!(matches!(run.try_malloc(11), Err(AllocError::TooLarge { limit: 10, .. })));
    run.malloc(10);
    assert!(matches!(Run::new(cpu()).try_malloc(u64::MAX), Err(AllocError::TooLarge { .. })));
}

#[test]
fn the_peak_is_reset_to_0() {
    let mut run = Run::new(cpu());
    run.malloc(MIB);
    run.engine.reset_peak();
    assert_eq!(run.engine.usage().peak, 0);
    run.malloc(1);
    assert_eq!(run.engine.usage().peak, MIB + 1);
}
