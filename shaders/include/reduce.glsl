// Adds the sums of a workgroup's threads, and stores them with `store_partial`. THREADS is the size of a workgroup in the
// staged shape.
#ifdef STAGED

const int MAX_SUBGROUPS = THREADS / 4;  // no subgroup is smaller than 4

shared float subgroup_sums[SUMS][MAX_SUBGROUPS];

void store_sums(const float sums[SUMS]) {
    [[unroll]] for (int s = 0; s < SUMS; ++s) {
        float total = subgroupAdd(sums[s]);
        if (subgroupElect()) subgroup_sums[s][gl_SubgroupID] = total;
    }
    barrier();
    int sum = int(gl_LocalInvocationIndex);
    if (sum < SUMS) {
        float total = 0.0;
        for (uint i = 0; i < gl_NumSubgroups; ++i) total += subgroup_sums[sum][i];
        store_partial(sum, total);
    }
}

#else

void store_sums(const float sums[SUMS]) {  // the workgroup is one subgroup
    [[unroll]] for (int s = 0; s < SUMS; ++s) {
        float total = subgroupAdd(sums[s]);
        if (subgroupElect()) store_partial(s, total);
    }
}

#endif
